import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { CliError } from '../exit.ts'

/** Whether the user can be prompted: input and standard error are terminals. */
export const canAsk = (): boolean => process.stdin.isTTY && process.stderr.isTTY

export const ask = (question: string): Promise<string> => readAnswer(question, process.stderr)

/** Prompts for a secret without echo. */
export async function askSecret(question: string): Promise<string> {
  process.stderr.write(question)
  const sink = new Writable({ write: (_chunk, _encoding, done) => done() })
  try {
    return await readAnswer('', sink)
  } finally {
    process.stderr.write('\n')
  }
}

async function readAnswer(question: string, output: NodeJS.WritableStream): Promise<string> {
  const cancellation = new AbortController()
  const lines = createInterface({ input: process.stdin, output, terminal: true })
  const cancel = () => cancellation.abort(new CliError('interrupted', 'Cancelled.'))
  lines.on('SIGINT', cancel).on('close', cancel)
  try {
    return await lines.question(question, { signal: cancellation.signal })
  } catch (error) {
    throw cancellation.signal.aborted ? cancellation.signal.reason : error
  } finally {
    lines.close()
  }
}

export const readInput = (): Promise<string> => text(process.stdin)

/** Asks for confirmation. Throws `CliError` if the user declines, or cannot be prompted and has not set `--yes`. */
export async function confirm(question: string, { yes }: { yes?: true }): Promise<void> {
  if (yes) return
  if (!canAsk()) throw new CliError('usage', `${question} Use --yes to confirm.`)
  if (!/^y(es)?$/i.test((await ask(`${question} [y/N] `)).trim())) throw new CliError('interrupted', 'Cancelled.')
}
