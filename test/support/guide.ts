import { spawnSync } from 'node:child_process'

/** A guide as a reader follows it: what is typed, what then has to be seen, what is changed in files. */

export type Step =
  /** `shown`: what comes out, `…` standing for anything. No command: it comes by itself. */
  | { kind: 'command'; terminal: string; command: string | undefined; shown: string[] }
  /** One place of a file is replaced by another. */
  | { kind: 'change'; file: string; before: string; after: string }

export interface Section {
  heading: string
  steps: Step[]
}

const block = /^```(console|diff) (\S+)\n(.*?)^```$/gms

/** The sections of a text whose headings have three marks, with those of their steps that are marked as such. */
export const sectionsOf = (text: string): Section[] =>
  text
    .split(/^### /m)
    .slice(1)
    .map((section) => ({
      heading: section.split('\n', 1)[0] ?? '',
      steps: [...section.matchAll(block)].flatMap(([, kind, argument = '', content = '']) =>
        kind === 'diff' ? [changeOf(argument, content)] : commandsOf(argument, content.trimEnd().split('\n')),
      ),
    }))

function changeOf(file: string, content: string): Step {
  const lines = (mark: string) =>
    content
      .split('\n')
      .filter((line) => line.startsWith(mark))
      .map((line) => line.slice(1))
      .join('\n')
  return { kind: 'change', file, before: lines('-'), after: lines('+') }
}

function commandsOf(terminal: string, lines: readonly string[]): Step[] {
  const steps: (Step & { kind: 'command' })[] = []
  for (const line of lines) {
    const last = steps.at(-1)
    if (line.startsWith('$ ')) steps.push({ kind: 'command', terminal, command: line.slice(2), shown: [] })
    else if (last === undefined) steps.push({ kind: 'command', terminal, command: undefined, shown: [line] })
    else if (last.command !== undefined && !isWhole(last.command)) last.command += `\n${line}`
    else last.shown.push(line)
  }
  return steps
}

/** Whether the shell has heard enough: it would ask on where a quotation is open. */
const isWhole = (command: string): boolean => spawnSync('bash', ['-n', '-c', command]).status === 0

/** What shown lines stand for. `…` is anything in a line; alone in a line, any lines. */
export const patternOf = (shown: readonly string[]): RegExp => new RegExp(`^${shown.map(linePattern).join('')}$`)

const literal = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)

const linePattern = (line: string): string =>
  line === '…' ? String.raw`(?:.*\n)*?` : String.raw`${line.split('…').map(literal).join('.*?')}\n`
