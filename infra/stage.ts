import { options } from './options.ts'
import { protectedStage, stageFault } from './stage-name.ts'

/** Which stage this is, and what follows from it. */
const { stage } = $app
const fault = stageFault(stage)
if (fault !== undefined) throw new Error(`The name of the stage "${stage}" ${fault}.`)

/** What people rely on: it is protected from removal, and kept. */
export const isProduction = stage === protectedStage

/** Functions, queues and secrets find each other by names, which all begin so: none of them has to be made before another. */
export const prefix = `${$app.name}-${stage}`

export const logRetention = isProduction ? '1 year' : '1 week'
/** The same where it is asked for as a number. */
export const logRetentionDays = isProduction ? 365 : 7

/** Alarms and the dashboard are paid for each month: a stage for trying out has them where it says whom to wake. */
export const hasAlarms = isProduction || options.alarmEmail !== undefined
