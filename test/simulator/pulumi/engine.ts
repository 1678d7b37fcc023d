/**
 * Replaces the Pulumi engine that SST downloads: evaluates the bundled program, compares the result with the stored
 * state and, except in a preview, stores the new state. Creates nothing in a cloud.
 */
import { appendFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Entry, readCheckpoint, type Stack, writeCheckpoint } from './checkpoint.ts'
import { evaluate } from './evaluate.ts'
import { type Events, eventsTo } from './events.ts'

const [command = '', ...args] = process.argv.slice(2)
const backend = (process.env['PULUMI_BACKEND_URL'] ?? '').replace(/^file:\/\//, '')

function stackOf(name = ''): Stack {
  const [organisation = '', project = '', stage = ''] = name.split('/')
  return [organisation, project, stage]
}

const option = (name: string): string => args[args.indexOf(name) + 1] ?? ''

async function programFile(): Promise<string> {
  const [, main = ''] = /^main: (.*)$/m.exec(await readFile(join(backend, 'Pulumi.yaml'), 'utf8')) ?? []
  return main
}

function destroy(oldEntries: readonly Entry[], events: Events): { entries: Entry[]; isSuccessful: boolean } {
  const protectedEntry = oldEntries.find(({ protect }) => protect)
  if (protectedEntry !== undefined) {
    const { urn } = protectedEntry
    events.failed(urn, `resource "${urn}" cannot be deleted because it is protected`)
    return { entries: [...oldEntries], isSuccessful: false }
  }
  for (const entry of oldEntries.toReversed()) {
    events.started('delete', entry, entry)
    events.done('delete', entry, entry)
  }
  return { entries: [], isSuccessful: true }
}

async function run(): Promise<number> {
  const stack = stackOf(option('--stack'))
  const isPreview = command === 'preview'
  const events = eventsTo(option('--event-log'), isPreview)
  const oldEntries = await readCheckpoint(backend, stack)
  const { entries, isSuccessful } =
    command === 'destroy'
      ? destroy(oldEntries, events)
      : await evaluate({ file: await programFile(), stack, isPreview }, oldEntries, events)
  if (!isPreview) await writeCheckpoint(backend, stack, entries)
  const line = { command, stage: stack[2], isSuccessful, changes: events.end() }
  appendFileSync(process.env['ENGINE_LEDGER'] ?? '/dev/null', `${JSON.stringify(line)}\n`)
  return isSuccessful ? 0 : 1
}

if (command === 'version') console.log('v3.215.0')
else if (command === 'stack') await writeCheckpoint(backend, stackOf(args[1]), [])
else process.exit(await run())
