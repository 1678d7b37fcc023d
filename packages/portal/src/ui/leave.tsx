import { Button } from './button.tsx'
import styles from './dialog.module.css'
import { discardChanges, type Scope, wouldDiscard } from './draft.ts'
import { Modal } from './modal.tsx'
import { newOverlay } from './overlay.ts'

const question = newOverlay()
let pendingQuestion: Promise<boolean> | undefined

/**
 * Asks before input is discarded. Returns whether the caller may continue. Repeated calls share the question. With
 * `isNavigation`, forms that keep their input for a return to the page do not count.
 */
export async function mayLeave(before?: Scope, isNavigation = false): Promise<boolean> {
  if (!wouldDiscard(before, isNavigation)) return true
  pendingQuestion ??= ask().finally(() => (pendingQuestion = undefined))
  const isDiscarded = await pendingQuestion
  if (isDiscarded) discardChanges(before, isNavigation)
  return isDiscarded
}

function ask(): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  question.show(<Question onAnswer={resolve} />)
  return promise.finally(() => question.show(undefined))
}

const Question = ({ onAnswer }: { onAnswer: (isDiscarded: boolean) => void }) => (
  <Modal title="Discard your changes?" onCancel={() => onAnswer(false)}>
    <p>The form has input that is not saved.</p>
    <div className={styles['actions']}>
      <Button onClick={() => onAnswer(false)}>Keep editing</Button>
      <Button variant="danger" onClick={() => onAnswer(true)}>
        Discard changes
      </Button>
    </div>
  </Modal>
)

/** Shows the question of `mayLeave`. Render it once. */
export const LeaveQuestion = () => question.useContent()

let isUnloading = false

/** Whether the browser must ask before it unloads the page. */
export const mustAskBeforeUnload = (): boolean => !isUnloading && wouldDiscard()

/** Leaves the page without asking. The drafts are restored afterwards. */
export function unload(navigate: () => void): void {
  isUnloading = true
  navigate()
}
