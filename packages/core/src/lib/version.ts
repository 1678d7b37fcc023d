import packageFile from '../../package.json' with { type: 'json' }

declare const releasedVersion: string | undefined

/** Whether this code came as a release that was applied; it was deployed else, or is a checkout. */
export const isReleased: boolean = typeof releasedVersion === 'string'

/** The version of the platform that this code is: what its release says, in a checkout what the package says. SemVer. */
export const version: string = typeof releasedVersion === 'string' ? releasedVersion : packageFile.version
