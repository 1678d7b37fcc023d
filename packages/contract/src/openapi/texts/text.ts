/** A description, an example, or both. */
export type Text = string | readonly [description: string | undefined, example: unknown]

/**
 * Names of components, operations or events, separated by spaces → their properties and parameters. A nested property
 * has the names of its parents before it, as in `lastError.code`. The empty name is the component itself.
 */
export type Texts = Readonly<Record<string, Readonly<Record<string, Text>>>>
