import packageFile from '../../package.json' with { type: 'json' }

declare const releasedVersion: string | undefined

/** False if the code was deployed from a checkout or runs in one. */
export const isReleased: boolean = typeof releasedVersion === 'string'

/** Comes from the release, or from package.json in a checkout. */
export const version: string = typeof releasedVersion === 'string' ? releasedVersion : packageFile.version
