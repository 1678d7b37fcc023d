#!/usr/bin/env node
import { CommanderError } from 'commander'
import { exitCodes, CliError, hasCode, messageOf } from './exit.ts'
import { say } from './print/write.ts'
import { createProgram } from './program.ts'

// Commander has already printed its own errors.
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
  const unexpectedErrorText = `Unexpected error: ${messageOf(error)}. This is a bug in plat. Set DEBUG=1 for details.`
  const lines = (error instanceof CliError ? error.message : unexpectedErrorText).split('\n')
  for (const line of lines) say(line)
  if (!(error instanceof CliError) && process.env['DEBUG']) console.error(error)
  return error instanceof CliError ? error.exitCode : exitCodes.refused
}

// If the reader has closed standard output, exit with the code that SIGPIPE would cause.
process.stdout.on('error', (error) => process.exit(hasCode(error, 'EPIPE') ? exitCodes.outputClosed : report(error)))
process.stderr.on('error', () => {})
try {
  await createProgram().parseAsync()
} catch (error) {
  process.exitCode = report(error)
}
