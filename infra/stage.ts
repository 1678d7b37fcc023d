import { options } from './options.ts'
import { protectedStage, stageNameError } from './stage-name.ts'

const { stage } = $app
const error = stageNameError(stage)
if (error !== undefined) throw new Error(`The name of the stage "${stage}" ${error}.`)

export const isProduction = stage === protectedStage

/**
 * Prefix of all names. Functions, queues and secrets refer to each other by name, so that none must be created first.
 */
export const prefix = `${$app.name}-${stage}`

export const logRetention = isProduction ? '1 year' : '1 week'
export const logRetentionDays = isProduction ? 365 : 7

/** Alarms and the dashboard cost money every month: other stages have them only with an alarm address. */
export const hasAlarms = isProduction || options.alarmEmail !== undefined
