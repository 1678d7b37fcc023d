export const colorModes = ['auto', 'always', 'never'] as const
export type ColorMode = (typeof colorModes)[number]

let mode: ColorMode = 'auto'

export const setColorMode = (chosenMode: ColorMode): void => {
  mode = chosenMode
}

interface Output {
  isTTY?: boolean
}

/** Whether to print colours: as set by `--color`, else by NO_COLOR or FORCE_COLOR, else in a terminal. */
export function shouldUseColor(output: Output = process.stdout, environment: NodeJS.ProcessEnv = process.env): boolean {
  const { NO_COLOR: noColor, FORCE_COLOR: forcedColor, TERM: terminal } = environment
  if (mode !== 'auto') return mode === 'always'
  if (noColor) return false
  if (forcedColor !== undefined) return forcedColor !== '0' && forcedColor !== 'false'
  return output.isTTY === true && terminal !== 'dumb'
}

const [green, yellow, red, cyan, grey] = [32, 33, 31, 36, 90]

const colorOfState: Record<string, number> = {
  ...Object.fromEntries(
    ['Healthy', 'Online', 'Completed', 'Delivered', 'Enabled', 'Active', 'Signed in'].map((state) => [state, green]),
  ),
  ...Object.fromEntries(['Degraded', 'Pending', 'Queued', 'Cancelling', 'warning'].map((state) => [state, yellow])),
  ...Object.fromEntries(
    ['Offline', 'Failed', 'RolledBack', 'Stopped', 'Unhealthy', 'Suspended', 'critical'].map((state) => [state, red]),
  ),
  ...Object.fromEntries(
    ['Running', 'Offered', 'Installing', 'Upgrading', 'Uninstalling', 'InProgress'].map((state) => [state, cyan]),
  ),
  ...Object.fromEntries(['Cancelled', 'Skipped', 'Unknown', 'Disabled', 'Signed out'].map((state) => [state, grey])),
}

export const colorState = (state: string): string => {
  const color = Object.hasOwn(colorOfState, state) ? colorOfState[state] : undefined
  return color === undefined ? state : `\u001b[${color}m${state}\u001b[0m`
}
