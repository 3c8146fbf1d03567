interface Word {
  text: string;
  count: number;
}

export class Words {
  private readonly known = new Map<string, Word>();

  /** Counts the words of a line. */
  add(line: string): void {
    for (const text of line.split(" ")) {
      const word = this.known.get(text);
      if (word === undefined) {
        this.known.set(text, { text, count: 1 });
      } else {
        word.count += 1;
      }
    }
  }

  get total(): number {
    let sum = 0;
    for (const word of this.known.values()) {
      sum += word.count;
    }
    return sum;
  }
}
