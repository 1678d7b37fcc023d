import { config } from '../config.ts'
import { log } from '../log.ts'

/**
 * Notifies a gateway that holds a relay's heartbeat. Errors are only logged, because the next heartbeat returns the
 * same work.
 */
export async function notifyRelay(channel: string): Promise<void> {
  if (config.PLAT_RELAY_NOTIFY_URL === '') return
  try {
    await fetch(config.PLAT_RELAY_NOTIFY_URL, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ channel }),
      signal: AbortSignal.timeout(1000),
    })
  } catch (error) {
    log('warn', 'Failed to notify the gateway', { channel, error: String(error) })
  }
}
