import { config } from '../config.ts'
import { log } from '../log.ts'

/**
 * Tells a gateway that holds a relay's beat that there is something to do. Nothing depends on it: where no gateway
 * holds requests, or the bell is not heard, the next beat learns the same.
 */
export async function notifyRelay(channel: string): Promise<void> {
  if (config.PLAT_WAKE_URL === '') return
  try {
    await fetch(config.PLAT_WAKE_URL, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ channel }),
      signal: AbortSignal.timeout(1000),
    })
  } catch (error) {
    log('warn', 'The gateway could not be woken', { channel, error: String(error) })
  }
}
