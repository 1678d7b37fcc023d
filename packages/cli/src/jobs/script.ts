import { readFile } from 'node:fs/promises'
import { CliError, messageOf } from '../exit.ts'
import { readInput } from '../print/ask.ts'

/** The script to run: of a file (`-` is standard input), the words of the command line, or standard input. */
export async function scriptOf(file: string | undefined, words: readonly string[]): Promise<string> {
  if (file !== undefined && words.length > 0) throw new CliError('usage', 'Give a file or a command, not both.')
  if (words.length > 0) return commandOf(words)
  if (file === undefined && process.stdin.isTTY) {
    throw new CliError('usage', 'Say what to run: -f FILE, a command after --, or a script on standard input.')
  }
  const script = file === undefined || file === '-' ? await readInput() : await readFileOf(file)
  if (script.trim() === '') throw new CliError('usage', 'The script is empty.')
  return script
}

/** A single word is a script as it stands; of several, each stays one word whatever it holds. */
const commandOf = (words: readonly string[]): string =>
  words.length === 1 ? words.join('') : words.map(quoted).join(' ')

const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

/** The text of a file that somebody named. */
export async function readFileOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new CliError('usage', `${file} cannot be read: ${messageOf(error)}`, error)
  }
}
