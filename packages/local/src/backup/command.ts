import { parseArgs } from 'node:util'
import { InvalidSettings } from '../settings.ts'
import { StartError } from '../start-error.ts'
import { BackupError } from './manifest.ts'

/** The single argument of a command: a file. */
export function fileArgument(command: string): string {
  const [file, ...others] = parseArgs({ allowPositionals: true }).positionals
  if (file === undefined || others.length > 0) throw new BackupError(`Name one file: npm run ${command} -- FILE`)
  return file
}

/** Runs a command. An error that the user can fix is printed in one line; the exit code is 1. */
export async function runCommand(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    const isExpected = [BackupError, InvalidSettings, StartError].some((kind) => error instanceof kind)
    console.error(error instanceof Error && isExpected ? error.message : error)
    process.exitCode = 1
  }
}
