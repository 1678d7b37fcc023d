#!/usr/bin/env node
import { CommanderError } from 'commander'
import { exitCodes, CliError, hasCode, messageOf } from './exit.ts'
import { say } from './print/write.ts'
import { program } from './program.ts'

/** Tells a person what went wrong; answers the exit code. Commander has told its own errors already. */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
  const lines = (error instanceof CliError ? error.message : `Unexpected error: ${messageOf(error)}`).split('\n')
  for (const line of lines) say(line)
  if (!(error instanceof CliError) && process.env['DEBUG']) console.error(error)
  return error instanceof CliError ? error.exitCode : exitCodes.refused
}

// Whoever reads the output has had enough of it: end as the signal would.
process.stdout.on('error', (error) => process.exit(hasCode(error, 'EPIPE') ? exitCodes.unread : report(error)))
process.stderr.on('error', () => {})
try {
  await program().parseAsync()
} catch (error) {
  process.exitCode = report(error)
}
