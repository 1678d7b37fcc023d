import { type Config, parseConfig } from './lib/settings/schema.ts'

/** The settings of this process, parsed once at start. */
export const config: Config = parseConfig(process.env)
