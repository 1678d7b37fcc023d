import { config } from '@platform/core/config'

// Some load balancers close connections that are idle for 30 seconds.
const maxWaitSeconds = 25

/**
 * GRIP headers for callers that send `Prefer: wait=<seconds>`: the gateway holds the response until the channel is
 * notified. Returns no headers if there is work, or if the gateway cannot hold responses.
 */
export function longPollHeaders(isIdle: boolean, channel: string, prefer: string | undefined): Record<string, string> {
  const requestedSeconds = Number(/(?:^|,) *wait *= *(\d{1,4}) *(?:[,;]|$)/i.exec(prefer ?? '')?.[1] ?? 0)
  const waitSeconds = Math.min(requestedSeconds, maxWaitSeconds, config.PLAT_HEARTBEAT_INTERVAL_SECONDS)
  if (!isIdle || waitSeconds === 0 || config.PLAT_RELAY_NOTIFY_URL === '') return {}
  return {
    'grip-hold': 'response',
    'grip-channel': channel,
    'grip-timeout': String(waitSeconds),
    'preference-applied': `wait=${waitSeconds}`,
  }
}
