// oxlint-disable no-control-regex -- control characters are what this is about

/** Colours and movements of a terminal: `ESC [ … letter`, `ESC ] … BEL`, and two-character ones. */
const sequences = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g

/** What a program has written for a terminal, as text to read: no colours, and a line that was rewritten as it ended. */
export const plainText = (written: string): string =>
  written
    .replaceAll(sequences, '')
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map(asItEnded)
    .join('\n')
    .replaceAll(controls, '')

/** A carriage return begins the line anew, as bars of progress do. */
function asItEnded(line: string): string {
  const ended = line.replace(/\r+$/, '')
  return ended.slice(ended.lastIndexOf('\r') + 1)
}
