import packageFile from '../../package.json' with { type: 'json' }

declare const releasedVersion: string | undefined

/** Whether this code was applied as a release, instead of deployed or run from a checkout. */
export const isReleased: boolean = typeof releasedVersion === 'string'

/** The version of this code: from its release, in a checkout from package.json. SemVer. */
export const version: string = typeof releasedVersion === 'string' ? releasedVersion : packageFile.version
