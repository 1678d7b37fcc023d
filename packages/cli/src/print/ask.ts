import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { CliError } from '../exit.ts'

/** Whether a person can be asked. */
export const canAsk = (): boolean => process.stdin.isTTY && process.stderr.isTTY

/** Asks a person for one line. */
export const ask = (question: string): Promise<string> => asked(question, process.stderr)

/** Asks a person for one line that is not shown while it is typed. */
export async function askSecret(question: string): Promise<string> {
  process.stderr.write(question)
  const nowhere = new Writable({ write: (_chunk, _encoding, taken) => taken() })
  try {
    return await asked('', nowhere)
  } finally {
    process.stderr.write('\n')
  }
}

async function asked(question: string, output: NodeJS.WritableStream): Promise<string> {
  const left = new AbortController()
  const lines = createInterface({ input: process.stdin, output, terminal: true })
  const leave = () => left.abort(new CliError('interrupted', 'Nothing was done.'))
  lines.on('SIGINT', leave).on('close', leave)
  try {
    return await lines.question(question, { signal: left.signal })
  } catch (error) {
    throw left.signal.aborted ? left.signal.reason : error
  } finally {
    lines.close()
  }
}

/** All of standard input as text. */
export const readInput = (): Promise<string> => text(process.stdin)

/** Asks before something is gone for good; `--yes` answers beforehand, and has to where nobody can be asked. */
export async function confirm(question: string, { yes }: { yes?: true }): Promise<void> {
  if (yes) return
  if (!canAsk()) throw new CliError('usage', `${question} Say --yes if so.`)
  if (!/^y(es)?$/i.test((await ask(`${question} [y/N] `)).trim()))
    throw new CliError('interrupted', 'Nothing was done.')
}
