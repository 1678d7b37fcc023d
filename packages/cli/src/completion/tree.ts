import type { Command } from 'commander'

export interface Word {
  text: string
  meaning: string
}

/** The words that can follow a command, such as `plat cluster list`. */
export interface Place {
  path: string
  words: Word[]
  /** Options that accept only certain values. */
  choices: { option: string; values: readonly string[] }[]
}

/** Lists every command of the tree with its completions. */
export function placesOf(command: Command, path: string = command.name()): Place[] {
  const { commands } = command
  const options = [...command.options, { long: '--help', description: 'display help', argChoices: undefined }]
  const place: Place = {
    path,
    words: [
      ...commands.map((one) => ({ text: one.name(), meaning: one.description() })),
      ...command.registeredArguments.flatMap(({ argChoices = [] }) =>
        argChoices.map((text) => ({ text, meaning: '' })),
      ),
      ...options.map(({ long, description }) => ({ text: long ?? '', meaning: description })),
    ],
    choices: options.flatMap(({ long, argChoices }) =>
      argChoices === undefined ? [] : [{ option: long ?? '', values: argChoices }],
    ),
  }
  return [place, ...commands.flatMap((one) => placesOf(one, `${path} ${one.name()}`))]
}

/** Quotes text for POSIX shells and fish. */
export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
