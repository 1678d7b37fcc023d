import { type Command, InvalidArgumentError } from 'commander'

/** Adds a command with a description, examples and the option `--json`. */
export function addCommand(
  parent: Command,
  usage: string,
  description: string,
  examples: readonly string[] = [],
): Command {
  const command = parent.command(usage).description(description).option('--json', 'print JSON')
  return withExamples(command, examples)
}

/** Adds a command that prints a table, with the option `--wide`. */
export const addTableCommand = (
  parent: Command,
  usage: string,
  description: string,
  examples: readonly string[] = [],
): Command => addCommand(parent, usage, description, examples).option('--wide', 'show all columns and whole values')

/** Adds a command that lists resources, with the options `--wide`, `--limit` and `--all`. */
export const addListCommand = (
  parent: Command,
  usage: string,
  description: string,
  examples: readonly string[] = [],
): Command =>
  addTableCommand(parent, usage, description, examples)
    .option('--limit <n>', 'maximum number of items, newest first', wholeNumber(1, 1_000_000), 100)
    .option('--all', 'show all')

export const withExamples = (command: Command, examples: readonly string[]): Command =>
  examples.length === 0
    ? command
    : command.addHelpText('after', ['', 'Examples', ...examples.map((example) => `  $ ${example}`)].join('\n'))

/** Returns a parser of option values that accepts whole numbers from `min` to `max`. */
export const wholeNumber = (min: number, max: number) => (text: string) => {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : -1
  if (value < min || value > max) throw new InvalidArgumentError(`Use a whole number from ${min} to ${max}.`)
  return value
}

/** Appends the value of a repeatable option to its previous values. */
export const collectValues = (text: string, before: readonly string[] = []): string[] => [...before, text]

/** Returns each field without and with the prefix `-`, as `--sort` accepts them. */
export const bothOrders = <const Field extends string>(...fields: Field[]) =>
  fields.flatMap((field) => [field, `-${field}` as const])

export const rawDescription = 'in a terminal, print control characters of the output unchanged'
