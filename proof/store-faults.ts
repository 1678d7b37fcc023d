import { signedHeaders } from '../packages/local/src/emulators/http/environment.ts'
import { readRuntimeFile } from '../packages/local/src/runtime-file.ts'
import type { FaultSettings } from '../packages/local/src/emulators/dynamodb/faults.ts'
import type { PlatformProcess } from '../test/support/platform.ts'

/** The fault switches of a running platform's store. */
export interface StoreFaults {
  /** Changes the switches that are named, and leaves the others. */
  set: (changes: Partial<FaultSettings>) => Promise<void>
  /** Switches everything off. */
  clear: () => Promise<void>
}

/** Finds them the way that programs of the same user find the platform. */
export async function storeFaults({ dataDir }: PlatformProcess): Promise<StoreFaults> {
  const { dynamoDbUrl, accessKeyId } = await readRuntimeFile(dataDir)
  const headers = signedHeaders(accessKeyId)
  const send = async (method: string, changes?: Partial<FaultSettings>): Promise<void> => {
    const body = changes === undefined ? undefined : JSON.stringify(changes)
    const { ok } = await fetch(`${dynamoDbUrl}/_faults`, { method, headers, ...(body !== undefined && { body }) })
    if (!ok) throw new Error('The store does not take the fault switches.')
  }
  return { set: (changes) => send('POST', changes), clear: () => send('DELETE') }
}
