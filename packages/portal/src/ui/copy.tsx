import { Check, Copy } from 'lucide-react'
import { useEffect, useState } from 'react'
import { Button, IconButton } from './button.tsx'
import styles from './copy.module.css'

const shownMs = 2000

/** Copies a text and shows a confirmation for two seconds. */
export function CopyButton({ text, label = 'Copy' }: { text: string | (() => string); label?: string }) {
  const [outcome, setOutcome] = useState<'copied' | 'blocked'>()
  useEffect(() => {
    if (outcome === undefined) return undefined
    const timer = setTimeout(() => setOutcome(undefined), shownMs)
    return () => clearTimeout(timer)
  }, [outcome])
  const copy = async () => {
    try {
      // Without TLS the clipboard does not exist.
      await navigator.clipboard.writeText(typeof text === 'string' ? text : text())
      setOutcome('copied')
    } catch {
      setOutcome('blocked')
    }
  }
  return (
    <>
      <IconButton label={label} icon={outcome === 'copied' ? Check : Copy} onClick={() => void copy()} />
      <span role="status" className="visually-hidden">
        {outcome === 'copied' && 'Copied'}
        {outcome === 'blocked' && 'The browser blocked copying. Select the text and copy it.'}
      </span>
    </>
  )
}

export const CopyField = ({ text, label }: { text: string; label: string }) => (
  <div role="group" aria-label={label} className={styles['field']}>
    <code className={styles['text']}>{text}</code>
    <CopyButton text={text} label={`Copy ${label.toLowerCase()}`} />
  </div>
)

interface NewSecretProps {
  /** How to use the text. */
  advice: string
  label: string
  text: string
  onDone: () => void
}

/** A new secret, which the platform returns only once. */
export const NewSecret = ({ advice, label, text, onDone }: NewSecretProps) => (
  <>
    <p>{advice}</p>
    <CopyField label={label} text={text} />
    <div>
      <Button variant="primary" onClick={onDone}>
        Done
      </Button>
    </div>
  </>
)
