import styles from './jobs.module.css'

/** The end of an id, which tells jobs apart at a glance; whoever listens hears the whole of it. */
export const ShortId = ({ id }: { id: string }) => (
  <>
    <code aria-hidden className={styles['short']} title={id}>
      {id.slice(-6)}
    </code>
    <span className="visually-hidden">{id}</span>
  </>
)
