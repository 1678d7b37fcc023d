import type { Part } from './part.ts'
import { runSuite, workers } from './suite.ts'

/** As vitest filters them. */
export const files: readonly string[] = [
  'killed',
  'faults',
  'test/worker/modules/',
  'test/core/signing/rotation',
  'test/journey/key-rotation',
  'test/local/dynamodb/kill',
  'durability',
  'test/relay/restart',
]

export const part: Part = {
  title: 'kill -9, or an error, at every failpoint',
  how:
    'Processes are killed, or a step fails, at every named place between two steps that a failure may separate, on the way of jobs, batches, ' +
    'modules, keys and sign-in, and started again: nothing that was promised is lost, nothing is done twice. ' +
    'Once at each place; how long it takes to recover is not measured.',
  run: (effort) =>
    runSuite('tests that pass, of those that kill, break off or lose an answer', { files, workers }, effort),
}
