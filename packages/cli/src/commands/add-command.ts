import type { operations } from '@platform/contract/openapi-types'
import { type Command, InvalidArgumentError } from 'commander'

/**
 * The examples in the help of a command. If the command uses operations of the API, the examples are grouped by
 * operation, and the API reference shows the first example of each group.
 */
export type Examples = readonly string[] | Partial<Record<keyof operations, string | readonly string[]>>

/** Adds a command with a description, examples and the option `--json`. */
export function addCommand(parent: Command, usage: string, description: string, examples: Examples = []): Command {
  const command = parent.command(usage).description(description).option('--json', 'print JSON')
  return withExamples(command, examples)
}

/** Adds a command that prints a table, with the option `--wide`. */
export const addTableCommand = (
  parent: Command,
  usage: string,
  description: string,
  examples: Examples = [],
): Command => addCommand(parent, usage, description, examples).option('--wide', 'show all columns and whole values')

/** Adds a command that lists resources, with the options `--wide`, `--limit` and `--all`. */
export const addListCommand = (parent: Command, usage: string, description: string, examples: Examples = []): Command =>
  addTableCommand(parent, usage, description, examples)
    .option('--limit <n>', 'maximum number of items, newest first', wholeNumber(1, 1_000_000), 100)
    .option('--all', 'show all')

const examplesByCommand = new WeakMap<Command, Examples>()

export function withExamples(command: Command, examples: Examples): Command {
  examplesByCommand.set(command, examples)
  const lines = Object.values(examples)
    .flat()
    .map((example) => `  $ ${example}`)
  return lines.length === 0 ? command : command.addHelpText('after', ['', 'Examples', ...lines].join('\n'))
}

/** Returns the first example of each operation that a command or its subcommands use. */
export function exampleCommandsOf(command: Command): Record<string, string> {
  const examples = examplesByCommand.get(command) ?? []
  const ownExamples = 'length' in examples ? [] : Object.entries(examples)
  return Object.assign(
    Object.fromEntries(ownExamples.map(([operation, texts]) => [operation, [texts].flat()[0]])),
    ...command.commands.map(exampleCommandsOf),
  )
}

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
