import { options } from './options.ts'
import { isProtectedStage, regionCode, stageNameError } from './stage-name.ts'

const { stage } = $app
const error = stageNameError(stage)
if (error !== undefined) throw new Error(`The name of the stage "${stage}" ${error}.`)

export const isProtected = isProtectedStage(stage, process.env)

/**
 * Prefix of all resource names. Functions, queues and secrets refer to each other by name, so that none must be created
 * first.
 */
export const prefix = `${$app.name}-${stage}`

/** Prefix of names that are unique in an account, such as those of roles: a stage may exist in several regions. */
export const globalPrefix = $interpolate`${prefix}-${aws.getRegionOutput().region.apply(regionCode)}`

export const logRetention = isProtected ? '1 year' : '1 week'
export const logRetentionDays = isProtected ? 365 : 7

/**
 * Alarms, metrics and the dashboard cost money every month, so an unprotected stage without an alarm address has none
 * by default.
 */
export const monitoring = options.monitoring ?? (isProtected || options.alarmEmail ? 'basic' : 'off')
