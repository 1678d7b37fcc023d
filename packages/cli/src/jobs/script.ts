import { isUtf8 } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { unixText } from '@platform/contract/unix-text'
import { CliError, messageOf } from '../exit.ts'
import { say } from '../print/write.ts'

export interface ScriptOptions {
  keepLineEnds?: true
}

/** Reads the script from a file (`-` is standard input), the command line or standard input. */
export async function scriptOf(
  file: string | undefined,
  words: readonly string[],
  options: ScriptOptions,
): Promise<string> {
  if (file !== undefined && words.length > 0)
    throw new CliError('usage', 'Specify either a file (-f) or a command, not both.')
  // Several words are a command and its arguments. They are quoted, so that the shell does not interpret them.
  if (words.length > 1) return words.map(quote).join(' ')
  if (file === undefined && words.length === 0 && process.stdin.isTTY) {
    throw new CliError('usage', 'Specify a script: -f FILE, a command after --, or standard input.')
  }
  const [script = ''] = toUnixScripts([words[0] ?? (await readText(file ?? '-'))], options)
  if (script.trim() === '')
    throw new CliError('usage', 'The script is empty. Specify one: -f FILE, a command after --, or standard input.')
  return script
}

/**
 * Converts scripts to LF line endings without a byte order mark, unless `keepLineEnds` is set, and prints a note if
 * that changes a script.
 */
export function toUnixScripts(scripts: readonly string[], { keepLineEnds }: ScriptOptions): readonly string[] {
  if (keepLineEnds) return scripts
  const convertedTexts = scripts.map(unixText)
  const changedTexts = convertedTexts.filter(({ corrections }) => corrections.length > 0)
  if (changedTexts.length > 0) {
    const subject = scripts.length === 1 ? 'The script has' : `${changedTexts.length} of ${scripts.length} scripts have`
    const correctionsText = [...new Set(changedTexts.flatMap((each) => each.corrections))].join(' and ')
    say(`${subject} ${correctionsText}. plat converts the text; use --keep-line-ends to submit it unchanged.`)
  }
  return convertedTexts.map(({ text }) => text)
}

const quote = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)

/** Reads UTF-8 text from a file (`-` is standard input). Throws `CliError` if the bytes are not valid UTF-8. */
export async function readText(file: string): Promise<string> {
  const bytes = file === '-' ? await buffer(process.stdin) : await readBytes(file)
  if (isUtf8(bytes)) return bytes.toString()
  const name = file === '-' ? 'Standard input' : file
  throw new CliError(
    'usage',
    `${name} is not UTF-8: the byte at offset ${invalidOffset(bytes)} is invalid. Convert it.`,
  )
}

async function readBytes(file: string): Promise<Buffer> {
  try {
    return await readFile(file)
  } catch (error) {
    throw new CliError('usage', `Cannot read ${file}: ${messageOf(error)}`, error)
  }
}

/**
 * Returns the offset of the first byte that makes the input invalid as UTF-8, or the length of the input if only its
 * last character is incomplete.
 */
function invalidOffset(bytes: Buffer): number {
  let [validLength, invalidLength] = [0, bytes.length + 1]
  while (invalidLength - validLength > 1) {
    const middle = Math.floor((validLength + invalidLength) / 2)
    if (isPrefix(bytes.subarray(0, middle))) validLength = middle
    else invalidLength = middle
  }
  return validLength
}

function isPrefix(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return true
  } catch {
    return false
  }
}
