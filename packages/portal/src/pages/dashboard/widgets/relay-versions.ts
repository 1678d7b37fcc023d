const minorOf = (version: string): [major: number, minor: number] | undefined => {
  const [, major, minor] = /^(\d+)\.(\d+)\./.exec(version) ?? []
  return major === undefined || minor === undefined ? undefined : [Number(major), Number(minor)]
}

/** Whether a relay is at least two minor versions, or a major version, older than the platform. */
export function isOutdated(relayVersion: string, platformVersion: string): boolean {
  const [relay, platform] = [minorOf(relayVersion), minorOf(platformVersion)]
  if (relay === undefined || platform === undefined) return false
  return relay[0] < platform[0] || (relay[0] === platform[0] && relay[1] + 2 <= platform[1])
}
