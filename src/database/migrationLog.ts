/** Where migrating says what it does; the service's log is one. */
export interface MigrationLog {
  info(fields: { event: string; [name: string]: unknown }, message: string): void;
  warn(fields: { event: string; [name: string]: unknown }, message: string): void;
  error(fields: { event: string; [name: string]: unknown }, message: string): void;
}
