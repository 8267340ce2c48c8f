"""What is public: laws of reports, messages, addresses of coins. Everything here may be printed on a poster."""
