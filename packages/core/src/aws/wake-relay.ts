import { config } from '../config.ts'
import { log } from '../log.ts'

export const wakeTopic = (clusterId: string): string => `${config.PLAT_CHANNEL_PREFIX}/clusters/${clusterId}`

/**
 * Makes the relay of a cluster send a heartbeat. Errors are only logged, because a lost wake-up only delays work until
 * the relay's next heartbeat.
 */
export async function wakeRelay(clusterId: string): Promise<void> {
  if (config.PLAT_CHANNEL_ENDPOINT === '') return
  try {
    // Imported on demand, so that functions that seldom wake a relay start faster.
    const { publish } = await import('./iot.ts')
    await publish(wakeTopic(clusterId))
  } catch (error) {
    log('warn', 'Failed to wake a relay', { clusterId, error: String(error) })
  }
}
