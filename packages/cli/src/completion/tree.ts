import type { Command } from 'commander'

/** A word that may come next, and what it means. */
export interface Word {
  text: string
  meaning: string
}

/** What may follow a command, such as `plat cluster list`. */
export interface Place {
  path: string
  words: Word[]
  /** Options whose value is one of a few. */
  choices: { option: string; values: readonly string[] }[]
}

/** Every command of the tree with what may follow it: all that the completion of a shell needs. */
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

/** Text as one word of any POSIX shell, and of fish. */
export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
