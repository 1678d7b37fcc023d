import { config } from '@platform/core/config'

/** A gateway holds an answer for this long at most; balancers on the way cut off what is silent for 30 seconds. */
const longestWaitSeconds = 25

/**
 * Headers that ask the gateway to hold an answer back until its channel is rung (GRIP), for a caller that said
 * `Prefer: wait=<seconds>`. None where there is something to tell at once, or no gateway that can hold.
 */
export function longPollHeaders(isIdle: boolean, channel: string, prefer: string | undefined): Record<string, string> {
  const askedSeconds = Number(/(?:^|,) *wait *= *(\d{1,4}) *(?:[,;]|$)/i.exec(prefer ?? '')?.[1] ?? 0)
  const waitSeconds = Math.min(askedSeconds, longestWaitSeconds, config.PLAT_HEARTBEAT_INTERVAL_SECONDS)
  if (!isIdle || waitSeconds === 0 || config.PLAT_WAKE_URL === '') return {}
  return {
    'grip-hold': 'response',
    'grip-channel': channel,
    'grip-timeout': String(waitSeconds),
    'preference-applied': `wait=${waitSeconds}`,
  }
}
