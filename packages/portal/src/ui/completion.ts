export interface Completion {
  /** The text of the field after the completion was chosen. */
  text: string
  label: string
  hint?: string
}
