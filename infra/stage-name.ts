/** The stage that people rely on: protected from removal, and what it keeps outlives it. */
export const protectedStage = 'production'

/** So long that the longest name of a function fits what Lambda takes, 64 characters. */
export const stageLengthMax = 20

/**
 * What is wrong with the name of a stage, to be said after it; undefined: nothing. Names of resources hold it between hyphens,
 * and roles allow what begins with one: a hyphen in it could make one stage's resources look like another's.
 */
export const stageFault = (stage: string): string | undefined =>
  new RegExp(`^[a-z][a-z0-9]{0,${stageLengthMax - 1}}$`).test(stage)
    ? undefined
    : `has to consist of lower-case letters and digits, ${stageLengthMax} at most, a letter first`
