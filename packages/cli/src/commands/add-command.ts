import { type Command, InvalidArgumentError } from 'commander'

/** Adds a command that answers something: what it does, how it is used, and `--json`. */
export function addCommand(
  parent: Command,
  usage: string,
  description: string,
  examples: readonly string[] = [],
): Command {
  const command = parent.command(usage).description(description).option('--json', 'print JSON for programs')
  return withExamples(command, examples)
}

/** The same for a command that lists something. */
export const addListCommand = (
  parent: Command,
  usage: string,
  description: string,
  examples: readonly string[] = [],
): Command =>
  addCommand(parent, usage, description, examples)
    .option('--limit <n>', 'how many to show, the newest first', wholeNumber(1, 1_000_000), 100)
    .option('--all', 'show all, however many there are')

/** Examples below the help of a command. */
export const withExamples = (command: Command, examples: readonly string[]): Command =>
  examples.length === 0
    ? command
    : command.addHelpText('after', ['', 'Examples', ...examples.map((example) => `  $ ${example}`)].join('\n'))

/** Takes a whole number from `min` to `max` on the command line. */
export const wholeNumber = (min: number, max: number) => (text: string) => {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : -1
  if (value < min || value > max) throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
  return value
}

/** Takes an option that may be given several times. */
export const several = (text: string, before: readonly string[] = []): string[] => [...before, text]
