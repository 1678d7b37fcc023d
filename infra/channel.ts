import { options } from './options.ts'
import { prefix } from './stage.ts'

/**
 * The control channel of relays: AWS IoT Core, which all stages of an account share. Therefore, the names of resources,
 * topics and clients begin with the prefix of the stage.
 */

/** Without the channel, for example in regions without AWS IoT Core, relays poll. */
export const hasChannel = options.channel !== 'off'

interface Target {
  id: string
  function: sst.aws.Function
  alias: aws.lambda.Alias
}

const authorizerName = `${prefix}-channel`

function brokerSettings() {
  const { endpointAddress } = aws.iot.getEndpointOutput({ endpointType: 'iot:Data-ATS' })
  return {
    PLAT_CHANNEL_URL: $interpolate`wss://${endpointAddress}/mqtt?x-amz-customauthorizer-name=${authorizerName}`,
    PLAT_CHANNEL_ENDPOINT: $interpolate`https://${endpointAddress}`,
  }
}

export const channelSettings = {
  ...(hasChannel ? brokerSettings() : { PLAT_CHANNEL_URL: '', PLAT_CHANNEL_ENDPOINT: '' }),
  PLAT_CHANNEL_PREFIX: prefix,
}

const allowInvocation = ({ id, alias, function: lambda }: Target, sourceArn: $util.Input<string>) =>
  new aws.lambda.Permission(`${id}Permission`, {
    action: 'lambda:InvokeFunction',
    function: lambda.name,
    qualifier: alias.name,
    principal: 'iot.amazonaws.com',
    sourceArn,
  })

export function authorizeConnections(target: Target) {
  if (!hasChannel) return
  const authorizer = new aws.iot.Authorizer(`${target.id}Authorizer`, {
    name: authorizerName,
    authorizerFunctionArn: target.alias.arn,
    status: 'ACTIVE',
    // AWS IoT verifies no token signature, because the function verifies the signature of the relay.
    signingDisabled: true,
  })
  allowInvocation(target, authorizer.arn)
}

export function reportPresence(target: Target) {
  if (!hasChannel) return
  const rule = new aws.iot.TopicRule(`${target.id}Rule`, {
    // Names of rules must not contain hyphens.
    name: `${prefix.replaceAll('-', '_')}_presence`,
    enabled: true,
    sqlVersion: '2016-03-23',
    sql: `SELECT * FROM '$aws/events/presence/+/+' WHERE startswith(clientId, '${prefix}-')`,
    lambdas: [{ functionArn: target.alias.arn }],
  })
  allowInvocation(target, rule.arn)
}
