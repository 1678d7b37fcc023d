import { IoTDataPlaneClient, PublishCommand } from '@aws-sdk/client-iot-data-plane'
import { config } from '../config.ts'
import { log } from '../log.ts'

const timeoutMs = 1000

let client: IoTDataPlaneClient | undefined

/** The topic on which the relay of a cluster receives wake-ups. */
export const wakeTopic = (clusterId: string): string => `${config.PLAT_CHANNEL_PREFIX}/clusters/${clusterId}`

/**
 * Makes the relay of a cluster send a heartbeat. The message has no content. Errors are only logged, because a lost
 * wake-up delays work until the relay's next heartbeat.
 */
export async function wakeRelay(clusterId: string): Promise<void> {
  if (config.PLAT_CHANNEL_ENDPOINT === '') return
  client ??= new IoTDataPlaneClient({ endpoint: config.PLAT_CHANNEL_ENDPOINT, maxAttempts: 1 })
  try {
    await client.send(new PublishCommand({ topic: wakeTopic(clusterId), qos: 0 }), {
      abortSignal: AbortSignal.timeout(timeoutMs),
    })
  } catch (error) {
    log('warn', 'Failed to wake a relay', { clusterId, error: String(error) })
  }
}
