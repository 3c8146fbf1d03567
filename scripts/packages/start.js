#!/usr/bin/env node
// Starts the binary that the package for this processor has.
'use strict';
const { spawn } = require('child_process');
const { constants } = require('os');

const name = `pjit-linux-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${name}/bin/pjit`);
} catch {
  console.error(`error: the package ${name} is not installed\nhint: npm install --global pjit --include=optional`);
  process.exit(1);
}
// A signal is for the binary to decide about: this script ends when that does.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) {
  process.on(signal, () => { if (signal !== 'SIGINT' && signal !== 'SIGQUIT') child.kill(signal); });
}
const child = spawn(binary, process.argv.slice(2), { stdio: 'inherit' });
child.on('error', (error) => {
  console.error(`error: cannot start ${binary}: ${error.message}`);
  process.exit(1);
});
child.on('exit', (status, signal) => process.exit(signal ? 128 + constants.signals[signal] : status));
