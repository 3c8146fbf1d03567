// Works until it is killed: node spin.js.
let sum = 0;
for (let i = 0; ; i++) sum += i % 7;
