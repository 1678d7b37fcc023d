// oxlint-disable no-control-regex -- control characters are what this is about

/** Terminal escape sequences: `ESC [ … letter`, `ESC ] … BEL`, and two-character ones. */
const sequences = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g

/** Terminal output as plain text: no colours, and rewritten lines in their final state. */
export const plainText = (written: string): string =>
  written
    .replaceAll(sequences, '')
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map(asItEnded)
    .join('\n')
    .replaceAll(controls, '')

/** A carriage return restarts the line, as progress bars do. */
function asItEnded(line: string): string {
  const ended = line.replace(/\r+$/, '')
  return ended.slice(ended.lastIndexOf('\r') + 1)
}
