import { type Config, parseConfig } from './settings.ts'

/** The settings of this process, parsed once at start. */
export const config: Config = parseConfig(process.env)
