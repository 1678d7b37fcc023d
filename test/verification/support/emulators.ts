import { readRuntimeFile } from '../../../packages/local/src/runtime-file.ts'
import type { StoreFaults } from '../../support/emulators/store-faults.ts'
import type { QueueFaults } from '../../support/emulators/queue-faults.ts'
import type { PlatformProcess } from '../../support/platform.ts'

export interface Faults<Settings> {
  read: () => Promise<Settings>
  set: (changes: Partial<Settings>) => Promise<Settings>
  clear: () => Promise<Settings>
}

function faultsAt<Settings>(url: string): Faults<Settings> {
  const send = async (method: string, changes?: object): Promise<Settings> => {
    const body = changes === undefined ? {} : { body: JSON.stringify(changes) }
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${url}/_faults`, { method, headers, ...body })
    if (!response.ok) throw new Error(`The emulator responded ${response.status} to its fault switches.`)
    return JSON.parse(await response.text())
  }
  return { read: () => send('GET'), set: (changes) => send('POST', changes), clear: () => send('DELETE') }
}

export const ownStoreFaults: Faults<StoreFaults> = faultsAt(process.env['AWS_ENDPOINT_URL_DYNAMODB'] ?? '')
export const ownQueueFaults: Faults<QueueFaults> = faultsAt(process.env['AWS_ENDPOINT_URL_SQS'] ?? '')

export const storeFaultsOf = async ({ dataDir }: PlatformProcess): Promise<Faults<StoreFaults>> =>
  faultsAt((await readRuntimeFile(dataDir)).dynamoDbUrl)
