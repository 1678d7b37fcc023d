import { setTimeout as delay } from 'node:timers/promises'
import { signedHeaders } from '@platform/local/emulators/http/environment'
import type { RunningPlatform } from '../one-machine/running.ts'

const calmMs = 500
const calmCalls = 30
const patienceMs = 180_000

/** Waits until a platform has worked off what it accepted: its store has next to nothing to do. */
export async function calm({ environment }: RunningPlatform): Promise<void> {
  const store = environment['AWS_ENDPOINT_URL_DYNAMODB'] ?? ''
  const headers = signedHeaders(environment['AWS_ACCESS_KEY_ID'] ?? '')
  const endMs = performance.now() + patienceMs
  const callsNow = async (): Promise<number> => {
    await fetch(`${store}/_metrics/reset`, { method: 'POST', headers })
    await delay(calmMs)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- our own stand-in answers
    const { operations } = (await (await fetch(`${store}/_metrics`)).json()) as {
      operations: Record<string, { calls: number }>
    }
    return Object.values(operations).reduce((sum, { calls }) => sum + calls, 0)
  }
  while ((await callsNow()) > calmCalls) {
    if (performance.now() > endMs) throw new Error('The platform does not come to rest.')
  }
}
