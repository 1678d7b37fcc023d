import { spawnSync } from 'node:child_process'

export type Step =
  /** A command and its expected output. Without a command, the expected output of a program that is already running. */
  | { kind: 'command'; terminal: string; command: string | undefined; shown: string[] }
  | { kind: 'change'; file: string; before: string; after: string }

export interface Section {
  heading: string
  steps: Step[]
}

const block = /^```(console|diff) (\S+)\n(.*?)^```$/gms

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
    const lastStep = steps.at(-1)
    if (line.startsWith('$ ')) steps.push({ kind: 'command', terminal, command: line.slice(2), shown: [] })
    else if (lastStep === undefined) steps.push({ kind: 'command', terminal, command: undefined, shown: [line] })
    else if (lastStep.command !== undefined && !isComplete(lastStep.command)) lastStep.command += `\n${line}`
    else lastStep.shown.push(line)
  }
  return steps
}

const isComplete = (command: string): boolean => spawnSync('bash', ['-n', '-c', command]).status === 0

/**
 * Returns the pattern for expected output: `…` matches any text within a line, and a line of only `…` matches any
 * lines.
 */
export const patternOf = (shown: readonly string[]): RegExp => new RegExp(`^${shown.map(linePattern).join('')}$`)

const literal = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)

const linePattern = (line: string): string =>
  line === '…' ? String.raw`(?:.*\n)*?` : String.raw`${line.split('…').map(literal).join('.*?')}\n`
