// A recursive parser and evaluator, JSON and garbage: stacks as programs for Node.js have them.
function parse(text) {
  let at = 0;
  const expression = () => { let left = term(); while (text[at] === '+' || text[at] === '-') { const op = text[at++]; left = { op, left, right: term() }; } return left; };
  const term = () => { let left = factor(); while (text[at] === '*') { at++; left = { op: '*', left, right: factor() }; } return left; };
  const factor = () => { if (text[at] === '(') { at++; const inner = expression(); at++; return inner; } let n = 0; while (text[at] >= '0' && text[at] <= '9') n = n * 10 + +text[at++]; return n; };
  return expression();
}
function evaluate(tree) {
  if (typeof tree === 'number') return tree;
  const left = evaluate(tree.left), right = evaluate(tree.right);
  return tree.op === '+' ? left + right : tree.op === '-' ? left - right : (left * right) % 1000003;
}
let seed = 1;
const random = n => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
function source(depth) { return depth === 0 || random(5) === 0 ? String(random(1000)) : '(' + source(depth - 1) + '+-*'[random(3)] + source(depth - 1) + ')'; }
function nest(depth) { return depth === 0 ? { leaf: 'x'.repeat(20) } : { a: [nest(depth - 1), nest(depth - 1)], n: depth }; }
function visit(value, f) { if (Array.isArray(value)) value.forEach(v => visit(v, f)); else if (value && typeof value === 'object') Object.keys(value).forEach(k => visit(value[k], f)); else f(value); }
const until = Date.now() + 6000;
let sum = 0;
while (Date.now() < until) {
  sum += evaluate(parse(source(10)));
  const copy = JSON.parse(JSON.stringify(nest(8)));
  visit(copy, v => { sum += String(v).length; });
  sum += JSON.stringify(copy, (k, v) => typeof v === 'number' ? v + 1 : v).length;
}
console.log(sum % 1000);
