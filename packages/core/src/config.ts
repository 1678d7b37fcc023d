import { type Config, parseConfig } from './lib/settings/schema.ts'

export const config: Config = parseConfig(process.env)
