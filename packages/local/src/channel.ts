import { setTimeout as delay } from 'node:timers/promises'
import { type Broker, startBroker } from './emulators/iot/broker.ts'
import { serveDataPlane } from './emulators/iot/data-plane.ts'
import type { FunctionPool } from './functions/pool.ts'
import type { Log } from './log.ts'

export interface Channel {
  /** Address that functions call to wake relays. */
  url: string
  accept: Broker['accept']
  count: Broker['count']
  /** Passes the running functions to the broker, so that relays can connect. */
  open: (invoke: FunctionPool['invoke']) => void
  /** Closes the connections of all relays, which then count as open until the next start. */
  disconnect: () => void
  close: () => Promise<void>
}

/** Lambda makes the same number of retries, with longer delays. */
const retryDelaysMs = [1000, 5000]

/** Starts the broker of the control channels. Calls of functions wait until `open` is called. */
export async function startChannel(accessKeyId: string, log: Log): Promise<Channel> {
  const functions = Promise.withResolvers<FunctionPool['invoke']>()
  const invoke = async (name: string, event: unknown) => (await functions.promise)(name, event)

  const report = async (event: unknown) => {
    for (const delayMs of [...retryDelaysMs, undefined]) {
      try {
        return void (await invoke('queue/presence', event))
      } catch (error) {
        if (delayMs === undefined) return log('an event of the control channel failed', { event, error })
        await delay(delayMs, undefined, { ref: false })
      }
    }
  }
  const broker = startBroker({
    authorize: (event) => invoke('channel-authorizer', event),
    onPresence: (event) => void report(event),
    log,
  })
  const dataPlane = await serveDataPlane(broker, accessKeyId)
  return {
    url: dataPlane.url,
    accept: broker.accept,
    count: broker.count,
    open: functions.resolve,
    disconnect: broker.close,
    close: dataPlane.close,
  }
}
