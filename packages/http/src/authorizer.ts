import type { ChannelGrant } from '@platform/core/relays/channel'
import { countVersionError } from '@platform/core/updates/error-count'
import { log, withTrace } from '@platform/core/log'
import { newTraceId } from '@platform/core/lib/trace'
import * as z from 'zod'
import { withVersionProbe } from './version-probe.ts'

/** The fields of an event of an AWS IoT custom authorizer that the platform reads. */
const AuthorizerEvent = z.object({
  protocolData: z.object({
    mqtt: z.object({ clientId: z.string().max(128), password: z.base64().max(8000) }),
  }),
})

interface AuthorizerResponse {
  isAuthenticated: boolean
  principalId?: string
  disconnectAfterInSeconds?: number
  refreshAfterInSeconds?: number
  policyDocuments?: string[]
}

/**
 * The broker closes a connection after this time, and the relay opens the next one with a new proof. A relay that was
 * replaced keeps its channel for at most this time. AWS IoT must not refresh the authorization earlier, because it
 * would send the same password, which has expired by then.
 */
const connectionSeconds = 14_400

/** Creates the Lambda function that decides whether a client may connect to the broker. */
export const createAuthorizer = (
  authorize: (clientId: string, password: string) => Promise<ChannelGrant | undefined>,
) => {
  const respond = withVersionProbe(async (event: unknown) => {
    const parsed = AuthorizerEvent.safeParse(event)
    if (!parsed.success) return undefined
    const { clientId, password } = parsed.data.protocolData.mqtt
    return authorize(clientId, Buffer.from(password, 'base64').toString())
  })
  return (event: unknown, context?: { invokedFunctionArn: string }) =>
    withTrace({ traceId: newTraceId() }, async () => {
      try {
        const result = await respond(event)
        if (result !== undefined && 'version' in result) return result
        return toResponse(result, context?.invokedFunctionArn ?? '')
      } catch (error) {
        log('error', 'authorization failed', { cause: error })
        await countVersionError()
        throw error
      }
    })
}

function toResponse(grant: ChannelGrant | undefined, functionArn: string): AuthorizerResponse {
  if (grant === undefined) return { isAuthenticated: false }
  const [, partition, , region, account] = functionArn.split(':')
  const arn = (name: string) => `arn:${partition}:iot:${region}:${account}:${name}`
  const statements = [
    { Action: 'iot:Connect', Resource: arn(`client/${grant.clientId}`) },
    { Action: 'iot:Subscribe', Resource: arn(`topicfilter/${grant.topic}`) },
    { Action: 'iot:Receive', Resource: arn(`topic/${grant.topic}`) },
  ].map((statement) => ({ Effect: 'Allow', ...statement }))
  return {
    isAuthenticated: true,
    // AWS IoT allows only letters and digits in a principal id.
    principalId: grant.relayId.replaceAll(/[^0-9A-Za-z]/g, ''),
    disconnectAfterInSeconds: connectionSeconds,
    refreshAfterInSeconds: connectionSeconds,
    policyDocuments: [JSON.stringify({ Version: '2012-10-17', Statement: statements })],
  }
}
