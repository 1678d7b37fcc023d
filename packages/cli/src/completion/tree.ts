import type { Command } from 'commander'

export interface Word {
  text: string
  description: string
}

/** The words that can follow a command, such as `plat cluster list`. */
export interface CommandCompletions {
  path: string
  words: Word[]
  /** Options that accept only certain values. */
  choices: { option: string; values: readonly string[] }[]
  /** Whether names of contexts can follow, which `contextNamesCommand` prints. */
  hasContexts: boolean
}

/** The shell command that prints the names of the contexts, which need no quotes. */
export const contextNamesCommand = 'plat context list --names 2>/dev/null'

/** Returns the completions of a command and of all commands below it. */
export function completionsOf(command: Command, path: string = command.name()): CommandCompletions[] {
  const { commands } = command
  const options = [...command.options, { long: '--help', description: 'display help', argChoices: undefined }]
  const completions: CommandCompletions = {
    path,
    words: [
      ...commands.map((one) => ({ text: one.name(), description: one.description() })),
      ...command.registeredArguments.flatMap(({ argChoices = [] }) =>
        argChoices.map((text) => ({ text, description: '' })),
      ),
      ...options.map(({ long, description }) => ({ text: long ?? '', description })),
    ],
    choices: options.flatMap(({ long, argChoices }) =>
      argChoices === undefined ? [] : [{ option: long ?? '', values: argChoices }],
    ),
    hasContexts: /^plat context (?:use|show|remove)$/.test(path),
  }
  return [completions, ...commands.flatMap((one) => completionsOf(one, `${path} ${one.name()}`))]
}

/** Quotes text for POSIX shells and fish. */
export const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
