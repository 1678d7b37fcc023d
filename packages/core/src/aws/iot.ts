import { IoTDataPlaneClient, PublishCommand } from '@aws-sdk/client-iot-data-plane'
import { config } from '../config.ts'

const timeoutMs = 1000

const client = new IoTDataPlaneClient({ endpoint: config.PLAT_CHANNEL_ENDPOINT, maxAttempts: 1 })

/** Sends an empty message to the subscribers of a topic. */
export async function publish(topic: string): Promise<void> {
  await client.send(new PublishCommand({ topic, qos: 0 }), { abortSignal: AbortSignal.timeout(timeoutMs) })
}
