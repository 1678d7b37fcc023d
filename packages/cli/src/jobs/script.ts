import { readFile } from 'node:fs/promises'
import { CliError, messageOf } from '../exit.ts'
import { readInput } from '../print/ask.ts'

/** Reads the script from a file (`-` is standard input), the command line or standard input. */
export async function scriptOf(file: string | undefined, words: readonly string[]): Promise<string> {
  if (file !== undefined && words.length > 0) throw new CliError('usage', 'Specify either a file or a command.')
  if (words.length > 0) return commandOf(words)
  if (file === undefined && process.stdin.isTTY) {
    throw new CliError('usage', 'Specify a script: -f FILE, a command after --, or standard input.')
  }
  const script = file === undefined || file === '-' ? await readInput() : await readFileOf(file)
  if (script.trim() === '') throw new CliError('usage', 'The script is empty.')
  return script
}

// A single argument is a script; several arguments are a command and are quoted separately.
const commandOf = (words: readonly string[]): string =>
  words.length === 1 ? words.join('') : words.map(quoted).join(' ')

const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

export async function readFileOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new CliError('usage', `Cannot read ${file}: ${messageOf(error)}`, error)
  }
}
